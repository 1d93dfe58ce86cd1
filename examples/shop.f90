! SPDX-License-Identifier: MIT
!
! shop.f90 - events from Fortran 2008: module pem_shop is made from shop.xml, and shop_symbols.c, which it calls
!
!   pem gen --lang fortran shop.xml -o gen
!   cc -O2 -c gen/shop_symbols.c
!   gfortran -O2 gen/shop.f90 shop.f90 shop_symbols.o -o shop -ldl
!   pem record -- ./shop
program shop
  use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t
  use pem_shop
  implicit none
  integer(c_int32_t) :: customers, customer
  character(len=12) :: argument

  customers = 3
  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) customers
  do customer = 1, customers
    call serve(customer)
  end do
  print '(i0, a)', customers, ' customers served'

contains

  subroutine serve(customer)
    integer(c_int32_t), intent(in) :: customer
    character(len=5), parameter :: goods(0:2) = [character(len=5) :: 'tea', 'Käse', 'bread']

    call pem_notify_shop_serve_begin(customer)
    call pem_notify_shop_sale(250_c_int64_t * customer, customer, payment_card, goods(mod(customer, 3)))
    call pem_notify_shop_serve_end(customer)
  end subroutine
end program
